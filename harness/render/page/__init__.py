"""A report as one self-contained HTML page: views in Python, charts as inline SVG, templates beside them. Pure."""
