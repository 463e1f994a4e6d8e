"""The pipeline's images in real containers, and the engine that they run on: `make test-containers`."""
