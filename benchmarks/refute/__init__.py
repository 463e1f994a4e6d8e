"""An opponent of the partitioner `evenflow`: searches for streams on which it is worst against the others."""
