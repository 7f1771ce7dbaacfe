"""Plans of changes of epochs."""
