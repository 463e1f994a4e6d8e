"""Coverage-guided fuzzing of the decoders and parsers (`make fuzz`), and the inputs that it has saved."""
