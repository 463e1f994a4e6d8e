"""A Kubernetes control plane and a cluster of one node on this machine."""
