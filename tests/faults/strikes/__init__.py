"""What faults do, and what is lost by them."""
