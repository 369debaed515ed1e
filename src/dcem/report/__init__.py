"""What people read: one document per result, written by four writers.

Nothing here computes a result. `audit`, `compare`, `cohort` make a `document` of one: blocks whose
cells are values. `to_html`, `to_markdown`, `to_terminal` and `to_json` write it, in the `words` of
a field; `shared` is what documents share; `figures` are drawn in one `style`, when somebody looks.
"""
