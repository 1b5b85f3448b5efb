// Progressive enhancement: every page works without this script.

const LANGUAGE = 'sendwright-docs-language';

for (const button of document.querySelectorAll('button[data-copy]')) {
  button.hidden = false;
  button.addEventListener('click', async () => {
    const code = button.parentElement.querySelector('code');
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = 'Copied';
    } catch {
      // Browsers provide no clipboard without https: select the text instead.
      getSelection().selectAllChildren(code);
      button.textContent = 'Selected';
    }
    setTimeout(() => (button.textContent = 'Copy'), 2000);
  });
}

// A selected language applies to all examples, also on other pages.
const choices = document.querySelectorAll('.languages input');
function choose(language) {
  for (const choice of choices) choice.checked = choice.value === language;
}
/** Accesses the storage, which throws if the browser blocks it. */
function tryStorage(access) {
  try {
    return access(localStorage);
  } catch {
    return null;
  }
}
const chosen = tryStorage((storage) => storage.getItem(LANGUAGE));
if ([...choices].some(({ value }) => value === chosen)) choose(chosen);
for (const choice of choices) {
  choice.addEventListener('change', () => {
    const before = choice.getBoundingClientRect().top;
    tryStorage((storage) => storage.setItem(LANGUAGE, choice.value));
    choose(choice.value);
    // The examples above have changed their height; keep the selected one at its position.
    scrollBy(0, choice.getBoundingClientRect().top - before);
  });
}

const form = document.querySelector('header form[role="search"]');
const input = form.querySelector('input');
const results = form.querySelector('.results');

let tries = 0;

/** Loads the search library and its index. */
async function load() {
  // Browsers cache the failure to load a module by its URL, so retries use another URL.
  const library = tries++ === 0 ? form.dataset.library : `${form.dataset.library}?${tries}`;
  const [{ default: MiniSearch }, response] = await Promise.all([import(library), fetch(form.dataset.index)]);
  if (!response.ok) throw new Error(`the index of the search could not be loaded: ${response.status}`);
  const { index, options, search, stopWords, maxResults } = await response.json();
  const loaded = MiniSearch.loadJS(index, options);
  return (query) => {
    const words = query.split(/[\n\r\p{Z}\p{P}]+/u);
    const searched = words.filter((word) => word !== '' && !stopWords.includes(word.toLowerCase()));
    const text = (searched.length > 0 ? searched : words).join(' ');
    const all = loaded.search(text, search);
    return (all.length > 0 ? all : loaded.search(text, { ...search, combineWith: 'OR' })).slice(0, maxResults);
  };
}

function element(name, text) {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}

function show(found) {
  const links = found.map(({ id, title, page, excerpt }) => {
    const link = element('a', title);
    link.href = id;
    link.append(element('small', page), element('span', excerpt));
    return link;
  });
  results.replaceChildren(...(links.length > 0 ? links : [element('p', 'Nothing matches.')]));
  results.hidden = false;
}

let searching;
/** Loads the search once; the next input retries after a failure. Enter opens the page of results in any case. */
function getSearch() {
  searching ??= load().catch(() => (searching = undefined));
  return searching;
}

input.addEventListener('focus', getSearch);
input.addEventListener('input', async () => {
  const query = input.value.trim();
  results.hidden = query === '' || results.childElementCount === 0;
  if (query === '') return;
  const search = await getSearch();
  if (search === undefined) return;
  // Skips the results if the reader has typed since.
  if (query === input.value.trim()) show(search(query));
});

form.addEventListener('keydown', (event) => {
  const links = [input, ...results.querySelectorAll('a')];
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step !== undefined && !results.hidden) {
    event.preventDefault();
    links[(links.indexOf(document.activeElement) + step + links.length) % links.length].focus();
  }
  if (event.key === 'Escape') {
    results.hidden = true;
    input.focus();
  }
});
document.addEventListener('click', (event) => {
  if (!form.contains(event.target)) results.hidden = true;
});
document.addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest('input, textarea')) return;
  event.preventDefault();
  input.focus();
});
