import assert from 'node:assert/strict';

/**
 * Tells a running simulator how its providers behave from now on; see its Behaviour.
 * @param url of the simulator, or of anything that it serves
 */
export async function behave(url: string, behaviour: object): Promise<void> {
  const response = await fetch(new URL('/simulator/behaviour', url), {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(behaviour),
  });
  assert.equal(response.status, 200, await response.text());
}
