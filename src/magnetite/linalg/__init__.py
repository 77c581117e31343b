"""Numbers only: Laplacians, potentials, eigenpairs and walks of dense batches of adjacency matrices."""
