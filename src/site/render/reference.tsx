import { EXAMPLE_URL } from '../../http/docs/current-examples.ts';
import { renderCode } from './code.ts';
import { type Description, type Endpoint, endpointsOf, type Media, type Operation } from './description.ts';
import { FieldRow, Fields } from './fields.tsx';
import type { Html } from './layout.tsx';
import { anchorOf, type Heading, renderInline, renderText } from './markdown.ts';
import { SAMPLES } from './samples.ts';

interface ReferenceSection {
  readonly anchor: string;
  readonly title: string;
  readonly text: string;
  /** Shown with a search result; `text` by default. */
  readonly excerpt?: string;
}

/** A page of the reference, with its sections for the search. */
export interface ReferencePage {
  readonly path: string;
  readonly title: string;
  readonly description: string;
  readonly headings: readonly Heading[];
  readonly sections: readonly ReferenceSection[];
  readonly html: string;
  readonly markdown: string;
}

const pathOf = (tag: string): string => `/docs/api/${anchorOf(tag)}`;

/** Renders a page for each group of operations, one for events, and a first one that lists all operations. */
export function renderReference(api: Description): ReferencePage[] {
  const endpoints = endpointsOf(api);
  const groups = api.tags.map(({ name, description }) => ({
    name,
    description,
    endpoints: endpoints.filter(({ tags }) => tags.includes(name)),
  }));
  const pages = groups.map((group) => renderGroup(api, group));
  const events = renderEvents(api);
  return [renderOverview(api, groups), ...pages, events];
}

interface Group {
  readonly name: string;
  readonly description: string;
  readonly endpoints: readonly Endpoint[];
}

function renderOverview(api: Description, groups: readonly Group[]): ReferencePage {
  const lines = groups.flatMap(({ name, endpoints }) => [
    `\n## ${name}\n`,
    ...endpoints.map(({ method, path, summary, operationId }) => {
      return `- [\`${method} ${path}\`](${pathOf(name)}#${operationId}): ${summary}`;
    }),
  ]);
  return {
    path: '/docs/api',
    title: 'API reference',
    description: 'Every operation of the API with its fields, responses and examples',
    headings: [],
    sections: [{ anchor: '', title: 'API reference', text: api.info.description }],
    markdown: `# API reference\n\n${api.info.description}\n${lines.join('\n')}\n`,
    html: (
      <>
        <h1>API reference</h1>
        {renderText(api.info.description)}
        {groups.map(({ name, endpoints }) => (
          <section>
            <h2 id={anchorOf(name)}>
              <a class="anchor" href={pathOf(name)} safe>
                {name}
              </a>
            </h2>
            <ul class="operations">
              {endpoints.map(({ method, path, summary, operationId }) => (
                <li>
                  <a href={`${pathOf(name)}#${operationId}`} safe>
                    {summary}
                  </a>
                  <Address method={method} path={path} />
                </li>
              ))}
            </ul>
          </section>
        ))}
      </>
    ) as string,
  };
}

function renderGroup(api: Description, { name, description, endpoints }: Group): ReferencePage {
  const headings = endpoints.map(({ operationId, summary }) => ({ level: 2, anchor: operationId, text: summary }));
  const text = endpoints.map(({ method, path, summary, description: more = '', requestBody }) => {
    const body = requestBody?.content['application/json']?.example;
    const example = body === undefined ? '' : `\n\`\`\`json\n${JSON.stringify(body, null, 2)}\n\`\`\`\n`;
    return `\n## ${summary}\n\n\`${method} ${path}\`\n${more && `\n${more}\n`}${example}`;
  });
  return {
    path: pathOf(name),
    title: name,
    description,
    headings,
    sections: endpoints.map((endpoint) => ({
      anchor: endpoint.operationId,
      title: endpoint.summary,
      text: [endpoint.description ?? '', `${endpoint.method} ${endpoint.path}`, ...fieldNames(endpoint)].join(' '),
    })),
    markdown: `# ${name}\n\n${description}\n${text.join('')}`,
    html: (
      <>
        <h1 safe>{name}</h1>
        <p class="lead">{renderInline(description)}</p>
        {endpoints.map((endpoint) => (
          <OperationSection api={api} endpoint={endpoint} />
        ))}
      </>
    ) as string,
  };
}

/** Returns names of parameters and of the example's fields, for the search. */
function fieldNames({ parameters = [], requestBody }: Operation): string[] {
  const example = requestBody?.content['application/json']?.example;
  return [...parameters.map(({ name }) => name), ...Object.keys(example ?? {})];
}

function Address({ method, path }: { method: string; path: string }): Html {
  return (
    <code class="address">
      <b safe>{method}</b> <span safe>{path}</span>
    </code>
  );
}

function OperationSection({ api, endpoint }: { api: Description; endpoint: Endpoint }): Html {
  const { operationId, summary, description, method, path, parameters = [], requestBody, responses } = endpoint;
  const body = requestBody?.content['application/json'];
  const [success, { content = {} }] = Object.entries(responses)[0] ?? ['200', {}];
  const answer = content['application/json'];
  return (
    <section class="operation">
      <h2 id={operationId}>
        <a class="anchor" href={`#${operationId}`} safe>
          {summary}
        </a>
      </h2>
      <p>
        <Address method={method} path={path} />
      </p>
      {description !== undefined && renderText(description)}
      <Parameters api={api} parameters={parameters} />
      {body?.schema !== undefined && (
        <>
          <h3>Request body</h3>
          <Fields api={api} schema={body.schema} />
        </>
      )}
      <h3>Request</h3>
      <Samples endpoint={endpoint} body={body?.example} />
      <h3 safe>{`Response ${success}`}</h3>
      <Response api={api} media={answer} />
      <Errors operation={endpoint} />
    </section>
  );
}

const PLACES: Readonly<Record<string, string>> = { path: 'Path', query: 'Query parameters', header: 'Headers' };

function Parameters({ api, parameters }: { api: Description; parameters: Operation['parameters'] }): Html {
  return (
    <>
      {Object.entries(PLACES).map(([place, title]) => {
        const here = (parameters ?? []).filter((parameter) => parameter.in === place);
        if (here.length === 0) return <></>;
        return (
          <>
            <h3 safe>{title}</h3>
            <dl class="fields">
              {here.map(({ name, schema, description, required = false }) => (
                <FieldRow
                  api={api}
                  field={{ name, schema: { ...schema, ...(description && { description }) }, isRequired: required }}
                />
              ))}
            </dl>
          </>
        );
      })}
    </>
  );
}

/** The request in each language. Radio buttons select one; browsers without `:has` show all. */
function Samples({ endpoint, body }: { endpoint: Endpoint; body: unknown }): Html {
  const { operationId, method, security } = endpoint;
  const request = { method, url: exampleUrl(endpoint), needsKey: security?.length !== 0, body };
  return (
    <fieldset class="samples">
      <legend class="hidden">Language of the example</legend>
      <div class="languages">
        {SAMPLES.map(({ name }, index) => (
          <label>
            <input type="radio" name={`language-${operationId}`} value={anchorOf(name)} checked={index === 0} />
            <span safe>{name}</span>
          </label>
        ))}
      </div>
      {SAMPLES.map(({ name, language, make }) =>
        renderCode(make(request), language, ` data-language="${anchorOf(name)}"`),
      )}
    </fieldset>
  );
}

/** Returns the URL of a request with the example values of its path and its required query parameters. */
function exampleUrl({ path, parameters = [] }: Endpoint): string {
  const text = (value: unknown) => encodeURIComponent(String(value));
  const filled = path.replaceAll(/\{(\w+)\}/g, (whole, name: string) => {
    const parameter = parameters.find((each) => each.in === 'path' && each.name === name);
    return parameter?.example === undefined ? whole : text(parameter.example);
  });
  const query = parameters.filter(({ in: place, required }) => place === 'query' && required === true);
  const values = query.map(({ name, example }) => `${name}=${text(example ?? '')}`);
  return EXAMPLE_URL + filled + (values.length > 0 ? `?${values.join('&')}` : '');
}

function Response({ api, media }: { api: Description; media: Media | undefined }): Html {
  if (!media) return <p>Without a body.</p>;
  const { schema, example } = media;
  return (
    <>
      {example !== undefined && renderCode(JSON.stringify(example, null, 2), 'json')}
      {schema !== undefined && (
        <details>
          <summary>Fields of the response</summary>
          <Fields api={api} schema={schema} />
        </details>
      )}
    </>
  );
}

function Errors({ operation: { responses } }: { operation: Operation }): Html {
  const errors = Object.entries(responses).filter(([status]) => Number(status) >= 400);
  if (errors.length === 0) return <></>;
  return (
    <details>
      <summary>Errors</summary>
      <dl class="fields">
        {errors.map(([status, { description }]) => (
          <div>
            <dt safe>{status}</dt>
            <dd>
              <p>{renderInline(description)}</p>
            </dd>
          </div>
        ))}
      </dl>
      <p>
        All errors have <a href="/docs/errors">the same form</a>.
      </p>
    </details>
  );
}

function renderEvents(api: Description): ReferencePage {
  const events = Object.values(api.webhooks).map(({ post }) => post);
  const bodyOf = (event: Operation): Media => event.requestBody?.content['application/json'] ?? {};
  const payloadsOf = (event: Operation): [string, unknown][] =>
    Object.entries(bodyOf(event).examples ?? {}).map(([type, { value }]) => [type, value]);
  const json = (value: unknown) => JSON.stringify(value, null, 2);
  const title = 'Webhook events';
  const description = 'The payload of every event that webhook endpoints receive';
  return {
    path: '/docs/api/events',
    title,
    description,
    headings: events.map(({ operationId, summary }) => ({ level: 2, anchor: operationId, text: summary })),
    sections: events.flatMap((event) =>
      payloadsOf(event).map(([type, value]) => ({
        anchor: type,
        title: type,
        text: `${event.summary} ${json(value)}`,
        excerpt: event.summary,
      })),
    ),
    markdown: `# ${title}\n\n${description}\n${events
      .flatMap((event) =>
        payloadsOf(event).map(([type, value]) => `\n## ${type}\n\n\`\`\`json\n${json(value)}\n\`\`\`\n`),
      )
      .join('')}`,
    html: (
      <>
        <h1>{title}</h1>
        <p class="lead">{description}</p>
        {events.map((event) => (
          <section class="operation">
            <h2 id={event.operationId}>
              <a class="anchor" href={`#${event.operationId}`} safe>
                {event.summary}
              </a>
            </h2>
            {bodyOf(event).schema !== undefined && (
              <details>
                <summary>Fields</summary>
                <Fields api={api} schema={bodyOf(event).schema ?? {}} />
              </details>
            )}
            {payloadsOf(event).map(([type, value]) => (
              <>
                <h3 id={type} safe>
                  {type}
                </h3>
                {renderCode(json(value), 'json')}
              </>
            ))}
          </section>
        ))}
      </>
    ) as string,
  };
}
