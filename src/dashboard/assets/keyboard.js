// Keyboard shortcuts. The dialog #shortcuts lists them. `g` and the letter of a link with data-go open that link.

/** The letter must follow `g` within this time, in milliseconds. */
const SEQUENCE_MS = 1500;
let goPressedAt = -Infinity;

function isTyping({ target }) {
  return target.closest?.('input, select, textarea, [contenteditable]') !== null;
}

/** Moves the focus between the links that open the rows of the page. */
function moveBetweenRows(step) {
  const links = [...document.querySelectorAll('main tbody tr')].flatMap(
    (row) => row.querySelector('th a[href]') ?? row.querySelector('a[href]') ?? [],
  );
  const current = links.findIndex((link) => link.closest('tr').contains(document.activeElement));
  const next = current < 0 ? links.at(step > 0 ? 0 : -1) : links[current + step];
  next?.focus();
  next?.scrollIntoView({ block: 'nearest' });
}

function go(letter) {
  document.querySelector(`a[data-go="${CSS.escape(letter)}"]`)?.click();
}

const ACTIONS = {
  '/': () => document.querySelector('[data-search]')?.focus(),
  j: () => moveBetweenRows(1),
  k: () => moveBetweenRows(-1),
  g: () => (goPressedAt = performance.now()),
  '?': () => document.getElementById('shortcuts')?.showPopover(),
};

document.addEventListener('keydown', (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return;
  // An open dialog disables the shortcuts; Escape closes it.
  if (document.querySelector('[role="dialog"]:popover-open')) return;
  const isGo = performance.now() - goPressedAt < SEQUENCE_MS;
  goPressedAt = -Infinity;
  const action = isGo ? () => go(event.key) : Object.hasOwn(ACTIONS, event.key) && ACTIONS[event.key];
  if (!action) return;
  event.preventDefault();
  action();
});
