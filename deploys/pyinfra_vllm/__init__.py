"""pyinfra plugin that serves large models with vLLM on clusters of GB10 nodes."""
