"""Whether anything grows while the pipeline runs for long near its sustained rate: `scenario`.

`course` runs the pipeline, `along` reads along with `evenflow verify`, `retention` lets the broker delete,
`sizes` looks at processes and folders, `tables` and `picture` show what was seen.
"""
