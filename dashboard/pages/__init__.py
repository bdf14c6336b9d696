"""One module a page: what it reads, and what it hands to its template."""
