"""Speed over graph sizes."""
