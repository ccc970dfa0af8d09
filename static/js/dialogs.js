/* Opens and closes <dialog>. A link may carry data-open-dialog too: its address is the way without JavaScript. */
const openers = new WeakMap();

/** Opens the dialog with this id and gives focus back to where it was when it closes. */
export function openDialog(id, opener = document.activeElement) {
  const dialog = document.getElementById(id);
  if (!dialog?.showModal || dialog.open) return false;
  openers.set(dialog, opener);
  dialog.showModal();
  dialog.addEventListener("close", () => openers.get(dialog)?.focus?.(), { once: true });
  return true;
}

export function start() {
  document.addEventListener("click", (event) => {
    const opener = event.target.closest?.("[data-open-dialog]");
    if (opener) {
      if (openDialog(opener.dataset.openDialog, opener)) event.preventDefault();
      return;
    }
    const closer = event.target.closest?.("[data-close-dialog]");
    if (closer) closer.closest("dialog")?.close();
  });
}
