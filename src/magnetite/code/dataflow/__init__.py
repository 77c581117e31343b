"""The data-flow graph of a function, `kind="dataflow"`.

`definitions.walk_function` walks over the syntax tree once, by the rules of `expressions`, `assignments`,
`control_flow` (how `if`, `for`, `while`, `try`, … become edges) and `definitions`, and records a `walk.Draft`. From the
draft, `scopes` finds the binding of each name, `locations` the alias classes and a bit for every write (what a call may
write is in `effects`), `reaching_definitions` the edges LAST_WRITE, and `control_flow` the edges CFG_NEXT. `graph` puts
all edges together; `masking` hides the function's own name.
"""
