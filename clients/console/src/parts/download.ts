/** Hands a file to the browser. A blob's URL is the page's own; it is forgotten when the download has begun. */
export function download(name: string, file: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 0);
}
