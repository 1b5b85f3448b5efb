// Small comforts; every page works without them.

const time = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const timeOfToday = new Intl.DateTimeFormat(undefined, { timeStyle: 'short' });
const timeOfThisYear = new Intl.DateTimeFormat(undefined, {
  month: 'short',
  day: 'numeric',
  hour: 'numeric',
  minute: '2-digit',
});
const day = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' });

/** The time of today, without the year in this year, without the time before. */
function short(at, now = new Date()) {
  if (at.toDateString() === now.toDateString()) return timeOfToday.format(at);
  return (at.getFullYear() === now.getFullYear() ? timeOfThisYear : day).format(at);
}

/** Improves a page, or a part of one that was just renewed. */
function improve(root) {
  for (const element of root.querySelectorAll('time[datetime]')) {
    if (element.title !== '') continue;
    const at = new Date(element.dateTime);
    const isShort = element.dataset.short !== undefined;
    element.title = isShort ? `${time.format(at)} (${element.dateTime})` : element.textContent;
    element.textContent = isShort ? short(at) : time.format(at);
  }
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
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(code.textContent);
    button.textContent = 'Copied';
  } catch {
    // Without https browsers have no clipboard: the text is selected instead.
    getSelection().selectAllChildren(code);
    button.textContent = 'Selected';
  }
  setTimeout(() => (button.textContent = label), 2000);
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

// A page that nobody sees does not renew itself.
document.addEventListener('htmx:beforeRequest', (event) => {
  if (document.hidden && event.detail.elt.id === 'live') event.preventDefault();
});

document.addEventListener('htmx:afterSwap', (event) => improve(event.detail.elt.parentElement ?? document));
improve(document);
// On a phone the navigation is a strip, and the page's own entry may be out of sight.
const strip = document.querySelector('nav.main');
const here = strip?.querySelector('[aria-current]');
if (here) strip.scrollLeft = here.offsetLeft - strip.clientWidth / 2 + here.clientWidth / 2;

// A form's time in the reader's own offset instead of UTC.
for (const form of document.querySelectorAll('form.local-time')) {
  const [time, offset] = form.querySelectorAll('input:not([type="hidden"])');
  const two = (number) => String(Math.floor(number)).padStart(2, '0');
  const follow = () => {
    const minutes = -new Date(time.value).getTimezoneOffset();
    if (Number.isNaN(minutes)) return;
    offset.value = `${minutes < 0 ? '-' : '+'}${two(Math.abs(minutes) / 60)}:${two(Math.abs(minutes) % 60)}`;
  };
  const at = new Date(`${time.value}${offset.value}`);
  if (!Number.isNaN(at.getTime())) {
    const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
    time.value = `${day}T${two(at.getHours())}:${two(at.getMinutes())}`;
    follow();
  }
  time.addEventListener('change', follow);
}
