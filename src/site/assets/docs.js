// Small comforts; every page works without them.

const LANGUAGE = 'sendwright-docs-language';

for (const button of document.querySelectorAll('button[data-copy]')) {
  button.hidden = false;
  button.addEventListener('click', async () => {
    const code = button.parentElement.querySelector('code');
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = 'Copied';
    } catch {
      // Without https browsers have no clipboard: the text is selected instead.
      getSelection().selectAllChildren(code);
      button.textContent = 'Selected';
    }
    setTimeout(() => (button.textContent = 'Copy'), 2000);
  });
}

// One choice of a language counts for all examples, also on other pages.
const choices = document.querySelectorAll('.languages input');
function choose(language) {
  for (const choice of choices) choice.checked = choice.value === language;
}
/** Runs an access to the storage, which throws where the browser blocks it. */
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
    // Examples above have another height now; the chosen one stays where it was.
    scrollBy(0, choice.getBoundingClientRect().top - before);
  });
}

const form = document.querySelector('header form[role="search"]');
const input = form.querySelector('input');
const results = form.querySelector('.results');

let tries = 0;

/** Loads the library and the index of the search. */
async function load() {
  // Browsers remember a module that could not be loaded, by its URL.
  const library = tries++ === 0 ? form.dataset.library : `${form.dataset.library}?${tries}`;
  const [{ default: MiniSearch }, response] = await Promise.all([import(library), fetch(form.dataset.index)]);
  if (!response.ok) throw new Error(`the index of the search could not be loaded: ${response.status}`);
  const { index, options, search, maxResults } = await response.json();
  const loaded = MiniSearch.loadJS(index, options);
  return (query) => {
    const all = loaded.search(query, search);
    return (all.length > 0 ? all : loaded.search(query, { ...search, combineWith: 'OR' })).slice(0, maxResults);
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
/** Loads the search once; after a failure, the next input tries again. Enter opens the page with results in any case. */
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
  // The reader may have typed on while the index was loaded.
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
