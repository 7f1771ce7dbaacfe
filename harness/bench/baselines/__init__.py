"""Published protocols that are measured beside ours, and are not served."""
