// What the page does besides its sections.

/** Functions that sections' scripts add, to be called when all scripts are there. */
export const starts = [];

/** Open all definitions while the page is printed. */
export function openForPrint() {
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("section > div > details:not([open])")];
    for (const each of opened) each.open = true;
  });
  addEventListener("afterprint", () => {
    for (const each of opened) each.open = false;
  });
}
