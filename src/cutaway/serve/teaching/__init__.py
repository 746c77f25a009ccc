"""Teaching over HTTP: files, fine-tuning jobs that survive whatever happens to the server, and the models they make."""
