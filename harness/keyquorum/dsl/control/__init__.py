"""What runs a program: its names and imports, its settings, control flow, printing, and the run itself."""
