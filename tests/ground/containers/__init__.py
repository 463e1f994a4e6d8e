"""A container engine on this machine, and the images that the tests make for it."""
