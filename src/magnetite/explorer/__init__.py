"""The explorer: a local page that shows graphs and their encodings, code graphs, sorting networks and results.

`server` answers requests. Each view has one file, `graph_view`, `code_view`, `sorting_view` and `results_view`, with
functions from plain data to plain data. Those that read what a user gives run in `workers`, processes with limits. The
page is in `static/`.
"""
