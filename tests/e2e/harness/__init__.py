"""What the end-to-end tests stand on: built programs, processes with deadlines, network namespaces, packet files."""
