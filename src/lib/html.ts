/** A piece of HTML that needs no more escaping. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** A text as it stands in HTML, in content and in quoted attributes alike. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] as string);
}

/** A template whose values are escaped unless they are Html themselves. */
export function html(strings: TemplateStringsArray, ...values: (string | number | Html | Html[])[]): Html {
  const texts = values.map((value) =>
    [value]
      .flat()
      .map((part) => (part instanceof Html ? part.text : escapeHtml(String(part))))
      .join(''),
  );
  return new Html(String.raw({ raw: strings }, ...texts));
}
