"""What a person sees of a running pipeline: metrics for Prometheus, and what is made of them."""
