// Has the words by which a rank says that others did not come.
#pragma once

namespace duplex::net {

/// The words behind which a rank that has waited for others names them, in the error of Mesh::join.
constexpr const char* waited_in_vain = " in vain for ";

}  // namespace duplex::net
