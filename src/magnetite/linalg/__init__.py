"""Numbers only: Laplacians, potentials, phases, eigenpairs, walks and distances, of plain tensors."""
