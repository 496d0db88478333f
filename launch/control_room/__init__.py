"""The control room: a page in the browser that shows runs from the files in their folders."""
