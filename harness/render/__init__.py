"""A report as text, markdown, JUnit and JSON. Pure: identical reports give identical bytes."""
