"""Kubernetes: what is deployed on it, and the test cluster that it is tried on: `make test-k8s`."""
