"""What a person types: the demo, the doctor, verify, status, and the pages that show commands."""
