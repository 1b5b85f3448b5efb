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
const chosen = localStorage.getItem(LANGUAGE);
if ([...choices].some(({ value }) => value === chosen)) choose(chosen);
for (const choice of choices) {
  choice.addEventListener('change', () => {
    const before = choice.getBoundingClientRect().top;
    localStorage.setItem(LANGUAGE, choice.value);
    choose(choice.value);
    // Examples above have another height now; the chosen one stays where it was.
    scrollBy(0, choice.getBoundingClientRect().top - before);
  });
}

const form = document.querySelector('header form[role="search"]');
const input = form.querySelector('input');
const results = form.querySelector('.results');
let loading;

/** Loads the library and the index when somebody is about to search. */
async function load() {
  loading ??= Promise.all([
    import(form.dataset.library),
    fetch(form.dataset.index).then((response) => response.json()),
  ]);
  const [{ default: MiniSearch }, { index, options, search, maxResults }] = await loading;
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
input.addEventListener('focus', () => (searching ??= load()), { once: true });
input.addEventListener('input', async () => {
  const query = input.value.trim();
  results.hidden = query === '';
  if (query === '') return;
  const search = await (searching ??= load());
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
  if (event.key !== '/' || event.target.closest('input, textarea')) return;
  event.preventDefault();
  input.focus();
});
