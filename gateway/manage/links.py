"""`/manage/links`: links to a picture of a brew and to the page for a screen, which need no key."""

from typing import Any

from pydantic import Field

from gateway.domain.times import stamp
from gateway.domain.view_link import ViewLink, ViewLinkKind
from gateway.errors import NotFound
from gateway.http.endpoint import AnswerModel, Body, Call, Done, Endpoint, Page, Query, Single
from gateway.http.parameters import Name
from gateway.services.links import PATHS


class LinkRecord(AnswerModel):
    """A link. Its token is shown only once, when it is made."""

    id: int
    kind: ViewLinkKind
    name: str
    brew_session_id: int | None = Field(description="The brew that it shows; null: the running ones.")
    created_at: str


class MadeLink(LinkRecord):
    """A link that was just made."""

    token: str = Field(description="The token, shown this once.")
    path: str = Field(description="The path of the page or picture on this gateway, with the token.")


class Links(Page):
    """The links of the account, oldest first."""

    links: list[LinkRecord]


class OneMadeLink(Single):
    """The link that was just made."""

    links: list[MadeLink] = Field(min_length=1, max_length=1)


class NewLink(Body):
    """A new link. Whoever has its address may look, without a key, until the link is revoked."""

    kind: ViewLinkKind = Field(
        description="`picture` is an image of a brew's chart, `tv` a page for a screen on the wall."
    )
    name: Name = Field(description="What it is for, such as `Screen in the kitchen`.")
    brew_session_id: int | None = Field(
        default=None, ge=1, description="The brew that it shows. Without it: the running ones, a picture one."
    )


async def list_links(call: Call[Query, None]) -> Links:
    """List the links of the account."""
    found = call.services.links.all(call.caller.account_id)
    return Links(count=str(len(found)), links=[LinkRecord.model_validate(_members(link)) for link in found])


async def make_link(call: Call[Query, NewLink]) -> OneMadeLink:
    """Make a link, which works from the next request on."""
    wanted, session = call.body, None
    if wanted.brew_session_id is not None:
        session = await call.store.sessions.get(wanted.brew_session_id)
        if session is None or not call.caller.may_see(session.account_id):
            raise NotFound
    account_id = call.caller.account_id if session is None else session.account_id
    token, link = await call.services.links.make(account_id, wanted.kind, wanted.name, session)
    more = {"token": token, "path": PATHS[link.kind].format(token=token)}
    return OneMadeLink(links=[MadeLink.model_validate({**_members(link), **more})])


async def revoke_link(call: Call[Query, None]) -> Done:
    """Revoke a link; the next request with it fails."""
    await call.services.links.revoke(call.caller.account_id, call.path_id("link_id"))
    return Done()


def _members(link: ViewLink) -> dict[str, Any]:
    return {
        "id": link.id,
        "kind": link.kind,
        "name": link.name,
        "brew_session_id": link.session_id,
        "created_at": stamp(link.created_at),
    }


ENDPOINTS = (
    Endpoint("GET", "/manage/links", list_links, "Links that need no key", Query, Links, scope="admin"),
    Endpoint(
        "POST",
        "/manage/links",
        make_link,
        "Make a link to a picture of a brew, or to the page for a screen on the wall",
        Query,
        OneMadeLink,
        body=NewLink,
        refusals=(404,),
        scope="admin",
    ),
    Endpoint(
        "DELETE",
        "/manage/links/{link_id}",
        revoke_link,
        "Revoke a link",
        Query,
        Done,
        refusals=(404,),
        scope="admin",
    ),
)
"""Links."""
