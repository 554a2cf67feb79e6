"""What the cluster knows of itself: the store, what its nodes hold, the image served from it."""
