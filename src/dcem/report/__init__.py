"""What people read: tables, figures and one-file pages, drawn from plain result objects.

Nothing here computes a result. `results` says what a comparison consists of; `words` puts it into
sentences no stronger than its intervals; `tables`, `figures` and `html` show it.
"""
