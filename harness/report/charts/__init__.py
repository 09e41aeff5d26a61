"""Charts of the page, as SVG that needs no script and no network."""
