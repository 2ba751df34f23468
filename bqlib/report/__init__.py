"""What people read of results: a page in HTML, and text for the terminal."""
