// Progressive enhancement: every page works without this script.

// Times are shown in the user's time zone setting, otherwise in the browser's time zone.
const setZone = document.documentElement.dataset.timeZone;
const browserZone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const timeZone = setZone ?? browserZone;
// The server reads the days and times of forms in the same zone.
document.cookie = `sendwright-time-zone=${browserZone}; path=/dashboard; max-age=31536000; samesite=lax`;
const format = (options) => new Intl.DateTimeFormat(undefined, { timeZone, ...options });
const exact = format({ dateStyle: 'medium', timeStyle: 'long' });
const timeOfToday = format({ timeStyle: 'short' });
const timeOfThisYear = format({ month: 'short', day: 'numeric', hour: 'numeric', minute: '2-digit' });
const day = format({ dateStyle: 'medium' });
const year = format({ year: 'numeric' });

/** Formats a time of today without its date, one of this year without the year, and an earlier one as a date. */
function short(at, now = new Date()) {
  if (day.format(at) === day.format(now)) return timeOfToday.format(at);
  return (year.format(at) === year.format(now) ? timeOfThisYear : day).format(at);
}

const UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
];
const spans = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto' });

/** Formats the time that has passed or remains, in the largest unit that fits. */
function relative(at, now = Date.now()) {
  const ms = at.getTime() - now;
  const [unit, length] = UNITS.find(([, unitMs]) => Math.abs(ms) >= unitMs) ?? UNITS.at(-1);
  return spans.format(Math.trunc(ms / length), unit);
}

function showTime(element) {
  const at = new Date(element.dateTime);
  const { short: isShort, relative: isRelative } = element.dataset;
  element.title = isShort === undefined && isRelative === undefined ? element.dateTime : exact.format(at);
  element.textContent = isRelative !== undefined ? relative(at) : isShort !== undefined ? short(at) : exact.format(at);
}

/** Gives each cell of a table with cards the name of its column, which cards.css shows in a narrow window. */
function labelCells(root) {
  for (const table of root.querySelectorAll('.cards table')) {
    const names = [...table.querySelectorAll('thead th')].map((heading) => heading.textContent.trim());
    for (const row of table.tBodies[0].rows) {
      [...row.cells].forEach((cell, column) => (cell.dataset.label = names[column] ?? ''));
    }
    table.dataset.labeled = '';
  }
}

/** Enhances a page, or a part that was refreshed. */
function improve(root) {
  labelCells(root);
  for (const element of root.querySelectorAll('time[datetime]')) if (element.title === '') showTime(element);
  for (const element of root.querySelectorAll('[data-zone]')) element.textContent = timeZone;
  for (const part of root.querySelectorAll('button[data-copy], [data-script]')) part.hidden = false;
}

document.addEventListener('click', async (event) => {
  const button = event.target.closest?.('button[data-copy]');
  if (!button) {
    for (const menu of document.querySelectorAll('details.menu[open]')) {
      if (!menu.contains(event.target)) menu.open = false;
    }
    return;
  }
  const code = button.parentElement.querySelector('code');
  const label = (button.dataset.label ??= button.textContent);
  try {
    await navigator.clipboard.writeText(code.textContent);
    button.textContent = 'Copied';
  } catch {
    // Browsers provide no clipboard without https: select the text instead.
    getSelection().selectAllChildren(code);
    button.textContent = 'Selected';
  }
  setTimeout(() => (button.textContent = label), 2000);
});

// A second click while the server works must not repeat the action.
document.addEventListener('submit', (event) => {
  const { method, dataset } = event.target;
  if (method !== 'post') return;
  if (dataset.submitted !== undefined) event.preventDefault();
  dataset.submitted = '';
});
document.defaultView.addEventListener('pageshow', () => {
  for (const form of document.querySelectorAll('form[data-submitted]')) delete form.dataset.submitted;
});

document.addEventListener('change', async (event) => {
  const field = document.getElementById(event.target.dataset?.into);
  const [file] = event.target.files ?? [];
  if (field && file) field.value = await file.text();
});

document.addEventListener('keydown', (event) => {
  if (event.key !== 'Escape') return;
  for (const menu of document.querySelectorAll('details.menu[open]')) {
    menu.open = false;
    menu.querySelector('summary').focus();
  }
});

/** True after another tab has selected another organization than that of this page. */
let isStale = false;

/**
 * True while a refresh would close what the user has opened in the part, move the keyboard focus or clear the selection. htmx
 * restores the focus of an element with an id.
 */
function isInUse(part) {
  const selection = getSelection();
  const isSelected = !selection.isCollapsed && selection.containsNode(part, true);
  return isSelected || part.querySelector(':popover-open, details[open], :focus-visible:not([id])') !== null;
}

// Skips refreshes while the page is hidden, or while the user uses the refreshed part.
document.addEventListener('htmx:beforeRequest', (event) => {
  const { elt } = event.detail;
  if (!elt.getAttribute('hx-trigger')?.startsWith('every')) return;
  if (isStale || document.hidden || isInUse(elt)) event.preventDefault();
});

document.addEventListener('htmx:responseError', (event) => {
  if (event.detail.xhr.status !== 409 || isStale) return;
  isStale = true;
  const notice = document.createElement('p');
  notice.className = 'notice warning';
  notice.setAttribute('role', 'status');
  notice.textContent = 'You have changed the organization in another tab, so this page is no longer refreshed.';
  document.querySelector('main > .title').after(notice);
});

document.addEventListener('htmx:afterSwap', (event) => improve(event.detail.elt.parentElement ?? document));
improve(document);
setInterval(() => document.querySelectorAll('time[data-relative]').forEach(showTime), 30_000);

// Fills the suggestions of the time zone field.
const zones = document.getElementById('time-zones');
for (const name of zones ? ['UTC', ...Intl.supportedValuesOf('timeZone')] : []) zones.append(new Option(name));
