"""The API that programs written for OpenAI's speak: completions, chat, embeddings, and explanations beside them."""
