"""000's comparison with micro-batch partitioners: their work, rates and claims."""
