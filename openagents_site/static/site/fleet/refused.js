/** What the site did not do, in words for people. */
export class Refused extends Error {}
