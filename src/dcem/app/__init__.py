"""Pages to click through, on this machine alone: `dcem app`.

One file per question. `places`: where a table is, and what it seems to hold. `workspace`: which
files may be read, what is kept where. `roles_form`: the roles that were clicked. `steps` and
`commands`: a choice as the command, and as the Python, that do the same. `runs`: a command in a
process of its own, found again by whoever comes back, and what it found. `guard`: who may ask.
`forms`: what was posted, and files that are handed over. `pages` and `rendering`: what is shown.
`server`: all of it on a port.

The pages compute nothing. They run the `dcem` commands that a person would type, and show them;
what was computed is in a folder that needs no app to be read.
"""
