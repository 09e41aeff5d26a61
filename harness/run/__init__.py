"""One run: the pipeline of stages, planted defects, the decision, and the report made of what was found."""
