"""What a person may write within a query, and what it means: column types, paths of fields, inputs,
aggregates, `emit`, `explode`.

Admission rule: text and its meaning. Whether the parts of a query fit each other is for `settings` to say,
and what they compute for `aggregates` and `expressions`. Only `arrow_types` imports Arrow, so that settings
load without it.
"""
