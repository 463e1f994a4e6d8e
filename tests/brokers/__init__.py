"""A cluster of three brokers on this machine, and what the pipeline does when it loses some of them."""
