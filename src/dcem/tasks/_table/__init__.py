"""A user's own table, from the file to numbers: one question a file.

`roles` (which column plays which part), `reading` (files to Arrow columns), `values` (one column as
codes or numbers), `columns` (what kind of column is it?), `encoder` (columns to features),
`outcome` (label, tested and truth), `leaks` (columns that may be recorded after the decision),
`load` (all of it in order).
"""
