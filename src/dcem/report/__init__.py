"""What people read: tables, figures and one-file pages, drawn from plain result objects.

Nothing here computes a result: what is drawn are the result objects of `dcem.compare`,
`dcem.audit` and `dcem.tasks`. `page` is the shell that all pages share, `style` and `panels` the
look of all figures, `words` numbers and sentences no stronger than their intervals.
"""
