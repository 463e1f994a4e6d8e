"""`Query`, in layers: what is set, its views and summaries, its columns, and whether all of that fits."""

from evenflow.settings.sections.query.query import Query as Query
