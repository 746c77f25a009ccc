"""What the server keeps: jobs, files and keys. A database for what is said of them, a storage for their bytes."""
